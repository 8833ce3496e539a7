import type { Link } from "../api/shapes";
import { CopyButton } from "./Buttons";
import { Time } from "./Time";

/** Where something too large for an answer lies. A part of an object needs a header, so curl. */
export function StoredLink({ link, what }: { link: Link; what: string }) {
  return (
    <span>
      It is too large for an answer of the API.{" "}
      {link.headers ? (
        <>
          This command reads it: <code>curl … | gunzip</code>{" "}
          <CopyButton text={commandOf(link)} what={`command that reads the ${what}`} />
        </>
      ) : (
        <a href={link.url} target="_blank" rel="noreferrer">
          Open the {what}
        </a>
      )}{" "}
      Good until <Time at={link.expires_at} how="date" />.
    </span>
  );
}

export function commandOf(link: Link): string {
  const headers = Object.entries(link.headers ?? {}).map(
    ([name, value]) => `-H '${name}: ${value}'`,
  );
  const unpack = link.content_encoding === "gzip" ? " | gunzip" : "";
  return `curl -s ${headers.join(" ")} '${link.url.replaceAll("'", "%27")}'${unpack}`;
}
