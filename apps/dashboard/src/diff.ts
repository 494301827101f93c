// What an edit changed, line by line: the longest common run of lines stays, the rest was removed or added.

export interface DiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
}

/** Above so many pairs of lines the middle is shown as wholly replaced: the table below would not fit into memory. */
const maxPairs = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [old, young] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start++;
  let end = 0;
  while (
    end < old.length - start &&
    end < young.length - start &&
    old[old.length - 1 - end] === young[young.length - 1 - end]
  )
    end++;
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [
    ...old.slice(0, start).map(same),
    ...diffMiddle(old.slice(start, old.length - end), young.slice(start, young.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

function diffMiddle(old: string[], young: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (old.length * young.length > maxPairs) return [...old.map(removed), ...young.map(added)];
  const common = commonLengths(old, young);
  const width = young.length + 1;
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      lines.push({ kind: 'same', text: old[i]! });
      i++;
      j++;
    } else if (
      j === young.length ||
      (i < old.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    ) {
      lines.push(removed(old[i++]!));
    } else {
      lines.push(added(young[j++]!));
    }
  }
  return lines;
}

/** At [i, j]: how many lines the rests from i and from j have in common, in order. */
function commonLengths(old: string[], young: string[]): Uint32Array {
  const width = young.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = young.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        old[i] === young[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  return lengths;
}
