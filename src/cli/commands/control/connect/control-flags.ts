/** Defines the flags that the commands of a control plane share. */

import type { Flags } from '../../../args/command.ts'
import { jsonFlag } from '../../../args/turn-flags.ts'

export const urlFlag = {
  url: {
    type: 'text',
    about:
      'The address of the control plane (default: CONTROLPLANE_API_URL, else CONTROLPLANE_API_PORT of this machine, else http://127.0.0.1:3100)',
  },
} as const satisfies Flags

/** Where, and whether for a program. */
export const controlFlags = { ...urlFlag, ...jsonFlag } as const satisfies Flags

export const noteFlag = { note: { type: 'text', about: 'Why; it is kept with the change' } } as const satisfies Flags

/** The codes that a refusal of the control plane ends with, besides 1 and 2. */
export const controlExits = [
  [3, 'the control plane refused the token, or does not allow this'],
  [6, 'a budget does not allow this'],
] as const

type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

export function present<T extends object>(fields: T): Present<T>
/** Leaves out the undefined fields of an object: flags that were not given. */
export function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
