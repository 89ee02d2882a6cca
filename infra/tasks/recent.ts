/** The few things that were asked for last: a cache that can't grow. */
export interface Recent<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  delete(key: string): void;
}

export function createRecent<Value>(most: number): Recent<Value> {
  const held = new Map<string, Value>();
  const set = (key: string, value: Value): void => {
    held.delete(key);
    held.set(key, value);
    const [oldest] = held.keys();
    if (held.size > most && oldest !== undefined) held.delete(oldest);
  };
  return {
    set,
    delete: (key) => void held.delete(key),
    get(key) {
      const value = held.get(key);
      if (value !== undefined) set(key, value);
      return value;
    },
  };
}
