// The handler of child-process.ts: its default export runs in a process of its own.
interface ChildJob {
  data: { upTo: number };
  attempt: number;
}

export default function countPrimes(job: ChildJob): number {
  if (job.attempt === 1) process.exit(1); // a bad start, to show that it does no harm
  let count = 0;
  for (let n = 2; n <= job.data.upTo; n++) if (isPrime(n)) count++;
  return count;
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return true;
}
