/**
 * Counts the values that a JSON value consists of, itself included. Walks without recursion, and stops at the first one more
 * than `most`.
 */
export function countValues(value: unknown, most: number): number {
  const left: object[] = isNested(value) ? [value] : [];
  let seen = 1;
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    const members: readonly unknown[] = Array.isArray(item) ? item : Object.values(item);
    seen += members.length;
    if (seen > most) return most + 1;
    for (const member of members) if (isNested(member)) left.push(member);
  }
  return seen;
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;
