const { readdirSync } = process.getBuiltinModule('node:fs');

/** The name to try while no gateway has ever listened. */
const fallbackName = 'gateway';

/** Chooses the gateway for each request: the last one that served the session, and another one after a failure. */
export interface Gateways {
  /** Returns the socket path to send the next request to. */
  next(): string;
  /** Records the gateway that said it serves the session. */
  served(name: string): void;
  /** Records that the last exchange failed. */
  failed(): void;
}

type Order = (names: readonly string[]) => readonly string[];

/** `order` puts the names that there are into the order in which they are tried; default: as they are sorted. */
export function createGateways(directory: string, order: Order = (names) => names): Gateways {
  let name: string | null = null;
  let at = 0;
  return {
    next() {
      const names = order(socketNames(directory));
      const known = name === null ? -1 : names.indexOf(name);
      if (known >= 0) at = known;
      return `${directory}/${names[at % names.length] ?? fallbackName}.sock`;
    },
    served(serving) {
      name = serving;
    },
    failed() {
      name = null;
      at += 1;
    },
  };
}

function socketNames(directory: string): string[] {
  return filesIn(directory)
    .filter((file) => file.endsWith('.sock'))
    .map((file) => file.slice(0, -'.sock'.length))
    .sort();
}

/** Lists a directory. An unreadable one counts as empty: the request is retried, as whenever no gateway is reachable. */
function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
