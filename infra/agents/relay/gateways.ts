const { readdirSync } = process.getBuiltinModule('node:fs');

/** Asked while no gateway has ever listened. */
const fallbackName = 'gateway';

/** Which socket to take: the last one that had the session; the next one after one that was away. */
export interface Gateways {
  next(): string;
  /** Told after each exchange: the name that a reply gave, or null for a failure. */
  heard(name: string | null): void;
}

export function createGateways(directory: string): Gateways {
  let name: string | null = null;
  let at = 0;
  return {
    next() {
      const names = socketNames(directory);
      const known = name === null ? -1 : names.indexOf(name);
      if (known >= 0) at = known;
      return `${directory}/${names[at % names.length] ?? fallbackName}.sock`;
    },
    heard(holder) {
      name = holder;
      if (holder === null) at += 1;
    },
  };
}

function socketNames(directory: string): string[] {
  return filesIn(directory)
    .filter((file) => file.endsWith('.sock'))
    .map((file) => file.slice(0, -'.sock'.length))
    .sort();
}

/** What can't be read holds no gateway for now: the request is held, like any that finds none. */
function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
