// A line as small as a word, for a trend beside its number.
const width = 100;
const height = 24;

export function Spark({ values, label, tone }: { values: readonly number[]; label: string; tone?: 'bad' }) {
  if (values.length < 2) return <span class="faint">–</span>;
  return (
    <svg
      class={`spark ${tone ?? ''}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={sparkPath(values)} />
    </svg>
  );
}

export function sparkPath(values: readonly number[]): string {
  const top = Math.max(...values, 1);
  return values
    .map((value, i) => {
      const x = (i / (values.length - 1)) * width;
      const y = height - 1 - (Math.max(0, value) / top) * (height - 2);
      return `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
