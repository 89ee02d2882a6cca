/** Why a dev server did not start; each kind has one remedy, which the message names. */
export type DevServerErrorKind = 'port-in-use' | 'database-locked' | 'bad-database' | 'start-failed';

export class DevServerError extends Error {
  readonly kind: DevServerErrorKind;

  constructor(kind: DevServerErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DevServerError';
    this.kind = kind;
  }
}

export function portInUse(port: number, purpose: string): DevServerError {
  return new DevServerError(
    'port-in-use',
    `expected port ${port} of 127.0.0.1 to be free for the Temporal ${purpose}, but another process listens on it; ` +
      'stop that process or choose another port',
  );
}

export function databaseLocked(dbFile: string, holder: string): DevServerError {
  return new DevServerError(
    'database-locked',
    `expected to be the only Temporal server on ${dbFile}, but ${holder} has it open; ` +
      'stop that one, connect to it, or name another file',
  );
}

export function badDatabase(dbFile: string, got: string): DevServerError {
  return new DevServerError(
    'bad-database',
    `expected ${dbFile} to be absent or a Temporal SQLite file, got ${got}; move it away or name another file`,
  );
}
