/** Defines a file of the dashboard, and what a browser may do with it. */

export type DashboardFile = {
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
  /** Its entity tag. */
  readonly tag: string
  /** Whether its name changes with its content, so that a copy never becomes old. */
  readonly isNamedByContent: boolean
}

/** No inline code, no other host, no frame, and no text that becomes code or markup. */
export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
