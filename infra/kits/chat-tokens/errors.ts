/** A model directory that cannot be used: a file is missing or invalid. The message names the file. */
export class InvalidModelDirectory extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'InvalidModelDirectory';
  }
}

/** A conversation that the model's chat template refuses to render. The message quotes the template's reason. */
export class TemplateRejection extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TemplateRejection';
  }
}
