/** The reason why a dev server did not start. Each kind has one remedy, which the message gives. */
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
    `port ${port} of 127.0.0.1, for the Temporal ${purpose}, is in use by another process; ` +
      'stop that process or choose another port',
  );
}

export function databaseLocked(dbFile: string, holder: string): DevServerError {
  return new DevServerError(
    'database-locked',
    `${dbFile} is open in ${holder}; stop that server, connect to it, or name another file`,
  );
}

export function badDatabase(dbFile: string, got: string): DevServerError {
  return new DevServerError(
    'bad-database',
    `${dbFile} is not a Temporal SQLite file: it is ${got}; move it away or name another file`,
  );
}
