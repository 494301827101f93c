// The frames that pages are made of: the heading of a page and what stands below it, a panel, a row of large figures, a list of facts.
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import { overview } from '../data/live.js';
import { tally } from '../severity.js';
import { Trouble } from './trouble.js';

/** The title of a page is the name of all that is on it. */
export const titleId = 'title';

export function PageFrame(props: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  crumbs?: ComponentChildren;
  children: ComponentChildren;
}) {
  // Whoever works in another tab sees there that something broke.
  const broken = overview.value ? tally(overview.value.attention, overview.value.problems).bad : 0;
  useEffect(() => {
    document.title = `${broken > 0 ? `(${broken}) ` : ''}${props.title} · Sluice`;
  }, [props.title, broken]);
  return (
    <>
      <header>
        <div>
          {props.crumbs && <p class="crumbs">{props.crumbs}</p>}
          <div class="title">
            <h1 id={titleId} class="wrap">
              {props.title}
            </h1>
            {props.lead && <p class="lead">{props.lead}</p>}
          </div>
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      <div class="stack">
        <Trouble />
        {props.children}
      </div>
    </>
  );
}

export function Panel(props: {
  title: string;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  foot?: ComponentChildren;
  size?: 'half' | 'third' | 'two-thirds' | 'full';
  /** The content brings its own edges: tables, lists. */
  flush?: boolean;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class={`panel ${props.size ?? ''}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{props.title}</h2>
        {props.note && <span class="note">{props.note}</span>}
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.flush ? props.children : <div class="body">{props.children}</div>}
      {props.foot && <footer>{props.foot}</footer>}
    </section>
  );
}

export interface FigureProps {
  label: string;
  value: ComponentChildren;
  unit?: string;
  about?: ComponentChildren;
  tone?: Tone;
  href?: string;
}

export type Tone = 'ok' | 'warn' | 'bad' | 'accent' | 'neutral';

export function Figures({ items, label }: { items: FigureProps[]; label: string }) {
  return (
    <div class="figures" role="group" aria-label={label}>
      {items.map((item) => (
        <Figure key={item.label} {...item} />
      ))}
    </div>
  );
}

function Figure({ label, value, unit, about, tone = 'neutral', href }: FigureProps) {
  const content = (
    <>
      <div class="label">{label}</div>
      <div class={`value ${tone === 'neutral' ? '' : `text-${tone}`}`}>
        {value}
        {unit && <small>{unit}</small>}
      </div>
      <div class="about">{about}</div>
    </>
  );
  return href === undefined ? (
    <div class="figure">{content}</div>
  ) : (
    <a class="figure" href={href}>
      {content}
    </a>
  );
}

export function Facts({ items }: { items: [name: string, value: ComponentChildren][] }) {
  const known = items.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

export function Mark({ tone = 'neutral', children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`mark ${tone}`}>{children}</span>;
}

export function Meter(props: { part: number; label: string; tone?: Tone }) {
  const share = Math.min(1, Math.max(0, Number.isFinite(props.part) ? props.part : 0));
  return (
    <span
      class={`meter ${props.tone ?? ''}`}
      role="progressbar"
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.floor(share * 100)}
    >
      <span style={{ width: `${share * 100}%` }} />
    </span>
  );
}
