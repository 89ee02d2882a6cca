import type { ProviderWatch } from '../../infra/sandbox/watch-provider.ts';

/** The kinds of sandboxes of a host that fail. While one does, the host would only fail what another host could do, so it takes no work. */
export interface FailingKinds {
  /** The reason why the host takes no new work; null if no kind fails. */
  readonly reason: string | null;
  note(watch: ProviderWatch): void;
  /** Calls the listener at each change of a kind. */
  onChange(listener: (watch: ProviderWatch) => void): void;
}

export function createFailingKinds(): FailingKinds {
  const reasons = new Map<string, string>();
  const listeners: ((watch: ProviderWatch) => void)[] = [];
  return {
    get reason() {
      const [first] = reasons;
      return first === undefined ? null : `its ${first[0]} sandboxes fail: ${first[1]}`;
    },
    note(watch) {
      if (watch.failing === null) reasons.delete(watch.kind);
      else reasons.set(watch.kind, watch.failing);
      for (const listener of listeners) listener(watch);
    },
    onChange: (listener) => void listeners.push(listener),
  };
}
