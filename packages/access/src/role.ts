// What a key may do, in three steps. Each step includes those below it:
//
//   viewer     reads
//   operator   also changes what runs: uploads, files, jobs, queues
//   admin      also decides who may do what, and where data lies
export const roles = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

export function isRole(text: unknown): text is Role {
  return roles.some((role) => role === text);
}

export function reaches(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}
