import { ApplicationFailure } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { offeredElsewhere } from '../../workflows/contracts/offered-elsewhere.ts';
import type { SandboxChoice, SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Host } from './host.ts';

type Offers = Pick<Host, 'isOfferedElsewhere'> & { readonly providers: Pick<Host['providers'], 'seen'> };

/** Whether this host lacks a kind of sandbox, and another one has it. */
export const belongsElsewhere = async (host: Offers, kind: SandboxKind): Promise<boolean> =>
  !(await host.providers.seen()).has(kind) && (await host.isOfferedElsewhere(kind));

/**
 * Declines work for which this host lacks the kind of sandbox, by a failure that costs no attempt: attempts are counted to tell
 * who is to blame. Where no host offers the kind, the work fails with what is missing.
 */
export async function declineElsewhere(host: Offers & Pick<Host, 'name'>, sandbox: SandboxChoice): Promise<void> {
  if (sandbox === 'auto' || !(await belongsElsewhere(host, sandbox))) return;
  throw declined(`host ${host.name} has no ${sandbox} sandboxes, which another one has; the stage waits for that one`);
}

/** Creates the failure by which a host declines work that other hosts may take from the same queue. */
export const declined = (message: string): ApplicationFailure =>
  ApplicationFailure.create({
    type: offeredElsewhere,
    message,
    category: ApplicationFailureCategory.BENIGN,
    nonRetryable: true,
  });
