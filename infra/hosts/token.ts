/**
 * The fencing token of a host: its name and generation. Sessions and sandboxes carry it, and a process touches only what has
 * the token that its host holds.
 */
export const tokenOf = (host: string, generation: number): string => `${host}/${generation}`;

/** The token of what was made before there were tokens. */
export const firstToken = (host: string): string => tokenOf(host, 1);

/** Whether a token, or none, is of an earlier generation of the host that holds the other. */
export function isOfEarlierLife(token: string | undefined, held: string | null): boolean {
  if (held === null) return false;
  const host = held.slice(0, held.lastIndexOf('/'));
  const found = token ?? firstToken(host);
  // What another host of this machine made is its own affair.
  return found !== held && found.startsWith(`${host}/`);
}
