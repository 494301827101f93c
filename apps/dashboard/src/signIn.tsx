// The door: a key once, a cookie from then on that no script can read.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, messageOf, signIn } from './data/api.js';
import { Command, Notice } from './parts/notice.js';

export function SignIn() {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    document.title = 'Sign in · Sluice';
  }, []);
  const enter = async (): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await signIn(key.trim());
    } catch (error) {
      setProblem(
        isWrongKey(error)
          ? 'This key opens nothing here. It may be mistyped, revoked or expired.'
          : messageOf(error),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <section class="panel" aria-labelledby="sign-in">
        <header>
          <img src="/favicon.svg" alt="" width={22} height={22} />
          <h1 id="sign-in">Sign in to Sluice</h1>
        </header>
        <form
          class="body"
          onSubmit={(event) => {
            event.preventDefault();
            void enter();
          }}
        >
          <label class="field">
            Key
            <input
              class="mono"
              type="password"
              name="key"
              autocomplete="current-password"
              required
              autofocus
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </label>
          {problem && <Notice tone="bad">{problem}</Notice>}
          <button class="button primary" type="submit" disabled={busy || key.trim() === ''} aria-busy={busy}>
            Sign in
          </button>
          <p class="faint">
            The key is exchanged for a cookie and not kept. No key yet? An admin makes one in the settings, or
            in a terminal:
          </p>
          <Command text="sluice keys create you --role operator" />
        </form>
      </section>
    </main>
  );
}

/** The server then says how programs send a key, which helps nobody who stands before a form. */
function isWrongKey(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}
