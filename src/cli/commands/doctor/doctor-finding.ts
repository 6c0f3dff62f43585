/** Defines what one check of `doctor` reports. */

/** `remedy` has the lines to print below: commands that the user can copy. */
export type Finding = {
  readonly what: string
  readonly state: 'ok' | 'note' | 'bad'
  readonly says: string
  readonly remedy?: readonly string[]
}
