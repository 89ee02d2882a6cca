import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '@temporalio/client';
import type { SearchAttributeType } from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';
import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

const pollMs = 100;
const visibleTimeoutMs = 30_000;

/** Numbers of the API's IndexedValueType. */
const wireKinds: Readonly<Record<SearchAttributeType, number>> = {
  TEXT: 1,
  KEYWORD: 2,
  INT: 3,
  DOUBLE: 4,
  BOOL: 5,
  DATETIME: 6,
  KEYWORD_LIST: 7,
};

type AnyConnection = Connection | NativeConnection;

/**
 * Registers temper's search attributes in the namespace; repeatable. Only the operator API also works on an existing database,
 * and a workflow that upserts an unknown attribute hangs with failing tasks.
 */
export async function registerSearchAttributes(
  connection: AnyConnection,
  namespace: string,
  signal?: AbortSignal,
): Promise<void> {
  const missing = await missingSearchAttributes(connection, namespace);
  if (missing.length === 0) return;
  const kinds = Object.fromEntries(
    Object.values(searchAttributes)
      .filter(({ name }) => missing.includes(name))
      .map(({ name, type }) => [name, wireKinds[type]]),
  );
  try {
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: kinds });
  } catch (error) {
    // Another process may have registered them at the same time; the check decides.
    if ((await missingSearchAttributes(connection, namespace)).length > 0)
      throw notRegistered(missing, namespace, error);
  }
  await untilVisible(connection, namespace, signal);
}

/** Names of temper's search attributes that the namespace lacks. Throws if one exists there with another kind. */
export async function missingSearchAttributes(connection: AnyConnection, namespace: string): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing: string[] = [];
  for (const { name, type } of Object.values(searchAttributes)) {
    const found = customAttributes[name];
    if (found === undefined || found === null) missing.push(name);
    else if (found !== wireKinds[type]) throw otherKind(name, type, found, namespace);
  }
  return missing;
}

async function untilVisible(connection: AnyConnection, namespace: string, signal?: AbortSignal): Promise<void> {
  const limit = AbortSignal.any([AbortSignal.timeout(visibleTimeoutMs), ...(signal === undefined ? [] : [signal])]);
  while ((await missingSearchAttributes(connection, namespace)).length > 0) {
    await sleep(pollMs, undefined, { signal: limit });
  }
}

function notRegistered(names: readonly string[], namespace: string, cause: unknown): Error {
  return new Error(
    `could not register the search attributes ${names.join(', ')} in the namespace ${namespace}: ${errorMessage(cause)}; ` +
      'in Temporal Cloud create them in its UI or with tcld, elsewhere ask an operator to create them',
    { cause },
  );
}

function otherKind(name: string, expected: string, found: number, namespace: string): Error {
  return new Error(
    `expected the search attribute ${name} of the namespace ${namespace} to be of kind ${expected}, got kind ${found}; ` +
      `remove it there with \`temporal operator search-attribute remove --name ${name}\``,
  );
}
