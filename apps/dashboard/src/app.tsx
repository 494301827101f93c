// The frame around every page: navigation, the bar with search and the state of the live connection, and the page that the address names.
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf, session, signOut, whoAmI } from './data/api.js';
import { lastHeardMs, liveState, now, overview, startLive, stopLive } from './data/live.js';
import { forgetAll } from './data/uploading.js';
import { FindBox } from './find.js';
import { compact, relative } from './format.js';
import { Help } from './help.js';
import { helpShown } from './keyboard.js';
import { pageFor, pages, type PageEntry, type PageProps } from './pages.js';
import { Action } from './parts/action.js';
import { Dialogs } from './parts/dialog.js';
import { Guard } from './parts/guard.js';
import { Empty, Failure, Waiting } from './parts/notice.js';
import { PageFrame, titleId } from './parts/panel.js';
import { Toasts, unsayAll } from './parts/toast.js';
import { go, path, segments } from './place.js';
import { SignIn } from './signIn.js';
import { nextTheme, theme } from './theme.js';

export function App() {
  const [failure, setFailure] = useState<unknown>(null);
  const ask = (): void => {
    setFailure(null);
    whoAmI().catch(setFailure);
  };
  useEffect(ask, []);
  const isIn = Boolean(session.value);
  useEffect(() => {
    if (!isIn) return undefined;
    startLive();
    return () => {
      stopLive();
      forgetAll();
      unsayAll();
      helpShown.value = false;
    };
  }, [isIn]);

  if (failure !== null)
    return (
      <main class="alone">
        <Failure error={failure} again={ask} />
      </main>
    );
  if (session.value === undefined) return <Waiting what="Asking the server who you are" />;
  if (session.value === null) return <SignIn />;
  return <Shell />;
}

function Shell() {
  const [isOpen, setOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const page = useRef<HTMLElement>(null);
  const shown = useRef(path.value);
  useEffect(() => {
    setOpen(false);
    if (shown.current === path.value) return;
    // As when a browser loads a page: who goes on with the keyboard begins in it, and who listens hears its name.
    shown.current = path.value;
    page.current!.focus({ preventScroll: true });
  }, [path.value]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const close = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      menu.current?.focus();
    };
    document.addEventListener('keydown', close);
    return () => document.removeEventListener('keydown', close);
  }, [isOpen]);
  return (
    <>
      <a class="skip" href="#page" data-leave>
        Skip to the page
      </a>
      <div class="shell">
        <Navigation isOpen={isOpen} />
        <header class="bar">
          <button
            ref={menu}
            class="button menu-button"
            type="button"
            aria-expanded={isOpen}
            aria-controls="navigation"
            onClick={() => setOpen(!isOpen)}
          >
            Menu
          </button>
          <FindBox />
          <div class="end">
            <Pulse />
            <button
              class="button plain small help-button"
              type="button"
              aria-label="Keyboard help"
              onClick={() => (helpShown.value = true)}
            >
              ?
            </button>
            <button
              class="button plain small"
              type="button"
              onClick={nextTheme}
              aria-label={`Theme: ${theme.value}`}
            >
              {{ system: '◐', light: '○', dark: '●' }[theme.value]}
              <span class="theme-word">{theme.value}</span>
            </button>
            <Who />
          </div>
        </header>
        <main ref={page} class="page" id="page" tabIndex={-1} aria-labelledby={titleId}>
          <CurrentPage />
        </main>
      </div>
      <Dialogs />
      <Toasts />
      {helpShown.value && <Help onClose={() => (helpShown.value = false)} />}
    </>
  );
}

function Navigation({ isOpen }: { isOpen: boolean }) {
  const shown = pages.filter((page) => page.group !== undefined && isFor(page));
  const groups = ['Work', 'Files', 'System'] as const;
  return (
    <nav class={`side ${isOpen ? 'open' : ''}`} id="navigation" aria-label="Pages">
      <a class="brand" href="/">
        <img src="/favicon.svg" alt="" />
        Sluice
      </a>
      {groups.map((group) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {shown
              .filter((page) => page.group === group)
              .map((page) => (
                <li key={page.path}>
                  <NavigationLink page={page} />
                </li>
              ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function NavigationLink({ page }: { page: PageEntry }) {
  const isHere = page.path === '' ? segments.value.length === 0 : segments.value[0] === page.path;
  const count = overview.value && page.count?.(overview.value);
  return (
    <a href={`/${page.path}`} aria-current={isHere ? 'page' : undefined}>
      {page.title}
      {count !== undefined && count !== null && count.value > 0 && (
        <span class={`count ${count.bad ? 'bad' : ''}`}>{compact(count.value)}</span>
      )}
    </a>
  );
}

function isFor(page: PageEntry): boolean {
  const own = session.value;
  if (!own) return false;
  return (!page.installation || own.installation) && (!page.admin || own.role === 'admin');
}

function Pulse() {
  const state = liveState.value;
  const words = {
    starting: 'connecting',
    live: 'live',
    polling: 'every 5 s',
    blind: 'no news',
    lost: 'no connection',
  }[state];
  const heard = lastHeardMs.value === 0 ? '' : `Last heard ${relative(lastHeardMs.value, now.value)}.`;
  return (
    <span class={`pulse ${state}`} role="status" title={heard}>
      <span>{words}</span>
    </span>
  );
}

function Who() {
  const own = session.value!;
  const name = own.key?.name ?? (own.via === 'open' ? 'no keys yet' : own.via);
  return (
    <>
      <span class="soft who" title={`Tenant ${own.installation ? '*' : own.tenant}, ${own.role}`}>
        {name} · {own.role}
      </span>
      {own.via === 'session' && (
        <Action
          tone="plain"
          small
          needs="viewer"
          run={async () => {
            await signOut();
            // The address may name what only they could see.
            go('/', { replace: true });
            return undefined;
          }}
        >
          Sign out
        </Action>
      )}
    </>
  );
}

type Loaded = { entry: PageEntry; page: ComponentType<PageProps> } | { entry: PageEntry; error: unknown };

function CurrentPage() {
  const found = pageFor(segments.value);
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const entry = found?.entry;
  useEffect(() => {
    if (!entry) return undefined;
    let isGone = false;
    entry.load().then(
      (module) => !isGone && setLoaded({ entry, page: module.default }),
      (error: unknown) => !isGone && setLoaded({ entry, error }),
    );
    return () => {
      isGone = true;
    };
  }, [entry]);
  if (!entry)
    return (
      <PageFrame title="Not here">
        <Empty title="There is no page at this address">
          The navigation leads to all of them; <kbd>/</kbd> finds an id.
        </Empty>
      </PageFrame>
    );
  if (!isFor(entry))
    return (
      <PageFrame title={entry.title}>
        <Empty title={entry.installation ? 'This concerns the whole installation' : 'This is for admins'}>
          Your key belongs to the tenant {session.value!.tenant}, with the role {session.value!.role}. See
          your <a href="/jobs">jobs</a>, <a href="/uploads">uploads</a> and <a href="/files">files</a>.
        </Empty>
      </PageFrame>
    );
  if (loaded?.entry !== entry)
    return (
      <PageFrame title={entry.title}>
        <Waiting />
      </PageFrame>
    );
  if ('error' in loaded)
    return (
      <PageFrame title={entry.title}>
        <Failure
          error={new Error(`This page could not be loaded: ${messageOf(loaded.error)}`)}
          again={() => location.reload()}
        />
      </PageFrame>
    );
  const Page = loaded.page;
  // Another job is another page: nothing of the one before may stay.
  const address = segments.value.join('/');
  return (
    <Guard
      key={address}
      what="This page"
      frame={(failure) => <PageFrame title={entry.title}>{failure}</PageFrame>}
    >
      <Page key={address} params={found.params} />
    </Guard>
  );
}
