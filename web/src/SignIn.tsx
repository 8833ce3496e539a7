import { useState } from "preact/hooks";
import { keepKey } from "./api/key";

/** `reason`: why the last key was given up. */
export function SignIn({ reason }: { reason: string }) {
  const [given, setGiven] = useState("");
  const [wrong, setWrong] = useState("");
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const key = given.trim();
    if (!/^rt_[\w-]+$/.test(key)) {
      setWrong("A key begins with rt_ and holds letters, digits, - and _ only.");
      return;
    }
    keepKey(key);
  };
  const said = wrong || reason;
  return (
    <form class="sign-in" onSubmit={onSubmit}>
      <h1>Paste an API key</h1>
      {said && (
        <p class="trouble" role="alert" id="key-trouble">
          {said}
        </p>
      )}
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        placeholder="rt_…"
        value={given}
        onInput={(event) => setGiven(event.currentTarget.value)}
        aria-describedby={said ? "key-trouble key-hint" : "key-hint"}
        aria-invalid={Boolean(said)}
        required
      />
      <button type="submit" class="primary">
        Show my runs
      </button>
      <p class="hint" id="key-hint">
        It is kept for this browser tab only and sent to this page's own address alone. Whoever runs
        the stage makes one with <code>runtally keys create</code>.
      </p>
    </form>
  );
}
