/**
 * The fencing token of a host: its name and generation. Sessions and sandboxes carry it, and a process touches only what has
 * the token that its host holds.
 */
export const tokenOf = (host: string, generation: number): string => `${host}/${generation}`;

/** The token of what was made before there were tokens. */
export const firstToken = (host: string): string => tokenOf(host, 1);

const hostOf = (token: string): string => token.slice(0, token.lastIndexOf('/'));

/** Whether a token belongs to the host that holds the other one, in any generation. A host without a token may have held it before. */
export const isOfHost = (token: string, held: string | null): boolean =>
  held === null || hostOf(token) === hostOf(held);

/** Whether a token, or none, is of an earlier generation of the host that holds the other. */
export function isOfEarlierLife(token: string | undefined, held: string | null): boolean {
  if (held === null) return false;
  const host = hostOf(held);
  const found = token ?? firstToken(host);
  // What another host of this machine made is its own affair.
  return found !== held && found.startsWith(`${host}/`);
}
