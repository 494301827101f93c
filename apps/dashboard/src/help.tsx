// What the keys do.
import { pages } from './pages.js';
import { Dialog } from './parts/dialog.js';

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard" narrow onClose={onClose}>
      <dl class="keys">
        <Key keys={['/']} does="Find an id, a queue, a page" />
        <Key keys={['j']} does="The next row" />
        <Key keys={['k']} does="The row above" />
        <Key keys={['Enter']} does="Open it" />
        <Key keys={['?']} does="This help" />
        {pages
          .filter(({ letter }) => letter)
          .map(({ letter, title }) => (
            <Key key={letter} keys={['g', letter!]} does={title} />
          ))}
      </dl>
    </Dialog>
  );
}

function Key({ keys, does }: { keys: string[]; does: string }) {
  return (
    <>
      <dt>
        {keys.map((key) => (
          <>
            <kbd>{key}</kbd>{' '}
          </>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}
