// The search on top: pages and queues by name, the best match first; anything else is taken for an id and followed through the whole flow.
import { useRef, useState } from 'preact/hooks';
import { overview } from './data/live.js';
import { plural } from './format.js';
import { pages } from './pages.js';
import { go, to } from './place.js';

interface Suggestion {
  title: string;
  about: string;
  href: string;
}

const most = 10;

export function FindBox() {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const found = isOpen ? suggest(text.trim()) : [];
  const open = (suggestion: Suggestion | undefined): void => {
    if (!suggestion) return;
    setText('');
    setOpen(false);
    field.current?.blur();
    go(suggestion.href);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setChosen(Math.min(found.length - 1, chosen + 1));
    else if (event.key === 'ArrowUp') setChosen(Math.max(0, chosen - 1));
    else if (event.key === 'Enter') open(found[chosen]);
    else if (event.key === 'Escape') field.current?.blur();
    else return;
    event.preventDefault();
  };
  return (
    <search class="find">
      <input
        ref={field}
        id="find"
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        placeholder="Find a job, upload, file or event by id, a queue, a page"
        aria-label="Find"
        aria-expanded={found.length > 0}
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant={found.length > 0 ? `found-${chosen}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKey}
      />
      {!isOpen && <kbd aria-hidden="true">/</kbd>}
      <ul id="found" class="suggestions" role="listbox" aria-label="Found" hidden={found.length === 0}>
        {found.map((suggestion, i) => (
          <li
            key={suggestion.href}
            id={`found-${i}`}
            role="option"
            aria-selected={i === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              open(suggestion);
            }}
          >
            <span>{suggestion.title}</span>
            <small>{suggestion.about}</small>
          </li>
        ))}
      </ul>
    </search>
  );
}

function suggest(text: string): Suggestion[] {
  if (text === '') return [];
  const named = pages
    .filter(({ group }) => group)
    .map(({ title, path }) => ({ title, about: 'page', href: `/${path}` }));
  const queues = (overview.value?.queues ?? []).map(({ name, counts }) => ({
    title: name,
    about: `queue, ${plural(counts.waiting, 'job')} waiting`,
    href: to('queues', name),
  }));
  const follow = {
    title: `Follow the id “${text}”`,
    about: 'upload → file → event → job',
    href: to('trace', { id: text }),
  };
  return [...bestOf([...named, ...queues], text.toLowerCase()).slice(0, most - 1), follow];
}

/** What is called so, then what begins so, then what contains it; otherwise as they came. */
function bestOf(all: readonly Suggestion[], word: string): Suggestion[] {
  const titled = (isSo: (title: string) => boolean): Suggestion[] =>
    all.filter(({ title }) => isSo(title.toLowerCase()));
  const best = new Set([
    ...titled((title) => title === word),
    // The second word of a title is one, too.
    ...titled((title) => ` ${title}`.includes(` ${word}`)),
    ...titled((title) => title.includes(word)),
  ]);
  return [...best];
}
