// Values are shared by readers who do not know of each other, so nobody may change them.

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  // The contents of a byte array cannot be frozen, and Object.freeze throws at it.
  if (ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const name in value) deepFreeze(value[name]);
  return value;
}
