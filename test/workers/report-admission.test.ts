import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Shortage } from '../../activities/host/admission.ts';
import { reportAdmission } from '../../workers/report-admission.ts';
import { until } from '../helpers/until.ts';

it('the note that a host takes no rollouts is withdrawn with the shortage, even if the store is away at that moment', async () => {
  const shortage: Shortage = { resource: 'memory', free: 100, needed: 200, limit: 'of this machine' };
  let isAway = false;
  let note: string | null = null;
  const tried: (string | null)[] = [];
  const notes = {
    async set(_host: string, _subject: string, text: string | null) {
      tried.push(text);
      if (isAway) throw new Error('the store is away');
      note = text;
    },
  };
  let changed: (shortage: Shortage | null) => void = () => undefined;
  const admission = {
    shortage,
    onChange(listener: (shortage: Shortage | null) => void) {
      changed = listener;
    },
  };
  reportAdmission(admission, { host: 'one', notes, log: { info: () => undefined, warn: () => undefined } });
  await until(() => note !== null);
  isAway = true;
  changed(null);
  await until(() => tried.includes(null));
  isAway = false;
  await until(() => note === null, 10_000);
  assert.ok(tried.length >= 3);
});
