// Jobs carry labels: texts such as tenant and owner. Here is what it means that a job has the labels which somebody asks for.

/** True for labels that contain all those wanted; own properties only, so that nobody inherits a tenant. */
export function labelMatcher(
  wanted: Readonly<Record<string, string>> | undefined,
): (labels: Readonly<Record<string, string>>) => boolean {
  const pairs = Object.entries(wanted ?? {});
  return (labels) => pairs.every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}
