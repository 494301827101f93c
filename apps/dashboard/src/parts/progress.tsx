// How far a job says that it is. A handler may write what it likes; only what can be a share of the whole is drawn as one.
import { percent } from '../format.js';
import { Json } from './json.js';
import { Meter } from './panel.js';

export function Progress({ progress, label }: { progress: unknown; label: string }) {
  if (progress === undefined || progress === null) return null;
  const isShare = typeof progress === 'number' && progress >= 0 && progress <= 100;
  if (!isShare) return <Json value={progress} label={label} />;
  return (
    <div>
      {percent(progress / 100)}
      <Meter part={progress / 100} label={label} tone="accent" />
    </div>
  );
}
