import { type Ulimit, ulimitNames } from '../../workflows/contracts/task.ts';
import type { Service } from './schema.ts';
import type { Reading } from './values.ts';

/** Limits that would give processes precedence over others of the host. They are left out. */
const leftOut = ['nice', 'rtprio', 'rttime'];
const unlimited = -1;

/** Reads the limits of the processes of a service (`ulimits`). */
export function ulimitsOf({ ulimits }: Service, { fill, reject }: Reading): readonly Ulimit[] {
  return Object.entries(ulimits).flatMap(([written, given]): readonly Ulimit[] => {
    const field = `ulimits.${written}`;
    if (leftOut.includes(written)) return [];
    const name = ulimitNames.find((one) => one === written);
    if (name === undefined) throw reject(field, `one of ${[...ulimitNames, ...leftOut].join(', ')}`, written);
    const numberOf = (value: string | number): number => {
      const text = fill(String(value), field).trim();
      const number = Number(text);
      if (/^-?\d+$/.test(text) && Number.isSafeInteger(number) && number >= unlimited) return number;
      throw reject(field, 'a whole number, or -1 for no limit', text);
    };
    const { soft, hard } = typeof given === 'object' ? given : { soft: given, hard: given };
    const limit = { name, soft: numberOf(soft), hard: numberOf(hard) };
    if (limit.hard !== unlimited && (limit.soft === unlimited || limit.soft > limit.hard)) {
      throw reject(field, 'a soft limit that the hard one allows', `${limit.soft} of ${limit.hard}`);
    }
    return [limit];
  });
}
