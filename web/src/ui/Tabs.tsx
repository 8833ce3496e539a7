import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

interface Props {
  label: string;
  tabs: Readonly<Record<string, string>>;
  chosen: string;
  choose: (tab: string) => void;
  children: ComponentChildren;
}

/** Arrow keys move between tabs, as https://www.w3.org/WAI/ARIA/apg/patterns/tabs/ asks for. */
export function Tabs({ label, tabs, chosen, choose, children }: Props) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const names = Object.keys(tabs);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = names.indexOf(chosen);
    const steps: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: -1,
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const name = names.at(next % names.length);
    if (name === undefined) return;
    choose(name);
    list.current?.querySelector<HTMLElement>(`[data-tab="${name}"]`)?.focus();
  };
  return (
    <>
      <div role="tablist" aria-label={label} class="tabs" ref={list} onKeyDown={onKeyDown}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => choose(name)}
          >
            {tabs[name]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} class="panel">
        {children}
      </div>
    </>
  );
}
