import { useState } from "preact/hooks";
import { count } from "../text/counts";
import { chunks, clipped, pieces, plain } from "../text/inert";

/** One line of text from agents, isolated from what stands around it. */
export function Inert({ text }: { text: string }) {
  return (
    <bdi title={text.length > 40 ? plain(clipped(text, 1000)) : undefined}>
      <Marked text={clipped(text, 500)} />
      {text.length > 500 && "…"}
    </bdi>
  );
}

function Marked({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((piece, at) =>
        piece.mark ? (
          <span key={at} class="mark" title="a character that cannot be seen">
            {piece.mark}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

const CHUNK = 16_000;

interface LongProps {
  text: string;
  code?: boolean;
  /** Characters that are shown at first. */
  most?: number;
}

/** Text from agents, of any length: the beginning at first, all of it on request. */
export function LongText({ text, code = false, most = 8_000 }: LongProps) {
  const [all, showAll] = useState(false);
  const shown = all ? text : clipped(text, most);
  return (
    <div class={code ? "long code" : "long"} dir="auto">
      {chunks(shown, CHUNK).map((chunk, at) => (
        <div key={at} class="chunk">
          <Marked text={chunk} />
        </div>
      ))}
      {text.length > most && (
        <button type="button" class="quiet" onClick={() => showAll(!all)}>
          {all ? "Show less" : `Show all ${count(text.length)} characters`}
        </button>
      )}
    </div>
  );
}
