import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "preact/hooks";
import { listRuns, type RunFilter } from "../api/client";
import type { RunPage } from "../api/shapes";
import { advanced, listed, type Newest, pollIn } from "./live";

/** The runs that a filter leaves, newest first: the newest page live, older ones on request. */
export function useRuns(filter: RunFilter) {
  const queries = useQueryClient();
  const key = ["runs", filter] as const;
  const newest = useQuery({
    queryKey: key,
    queryFn: async ({ signal }) =>
      advanced(queries.getQueryData<Newest>(key), await listRuns(filter, signal)),
    refetchInterval: (query) => pollIn(query.state.error ? 3 : (query.state.data?.unchanged ?? 0)),
    refetchOnWindowFocus: "always",
  });
  const from = newest.data?.next;
  const older = useInfiniteQuery({
    queryKey: ["older-runs", filter, from],
    queryFn: ({ pageParam, signal }) => listRuns({ ...filter, cursor: pageParam }, signal),
    initialPageParam: from ?? "",
    getNextPageParam: (page: RunPage) => page.next,
    enabled: false,
    gcTime: 60_000,
  });
  const pages = older.data?.pages;
  const runs = useMemo(
    () => listed(newest.data?.runs ?? [], pages ?? []),
    [newest.data?.runs, pages],
  );
  const hasMore = pages ? older.hasNextPage : from !== undefined;
  return {
    newest,
    runs,
    hasMore,
    loadingMore: older.isFetching,
    moreError: older.error,
    loadMore: () => {
      if (!hasMore || older.isFetching) return;
      if (pages) older.fetchNextPage();
      else older.refetch();
    },
  };
}
