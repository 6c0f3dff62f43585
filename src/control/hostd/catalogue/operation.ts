/** Defines an operation of the catalogue: what runs, with which parameters, how long, and how dangerous it is. */

import type { Risk } from '../hostd-wire.ts'
import type { ArgvElement } from './argv-template.ts'
import type { LinearPattern } from './linear-pattern.ts'

export const platforms = ['linux', 'freebsd', 'darwin'] as const
export type Platform = (typeof platforms)[number]

type Common = {
  /** Absent: the parameter must be given. `null`: without it, the elements that name it are left out. */
  readonly fallback?: string | number | null
}

export type Param = Common &
  (
    | { readonly type: 'enum'; readonly values: readonly string[] }
    | { readonly type: 'text'; readonly pattern: LinearPattern; readonly most: number }
    | { readonly type: 'int'; readonly min: number; readonly max: number }
    /** An existing path in the folder `under`, reached without any symbolic link. */
    | { readonly type: 'path'; readonly under: string; readonly kind: 'any' | 'file' | 'folder' }
    /** Several texts, each an element of its own; `count` at most. */
    | { readonly type: 'list'; readonly pattern: LinearPattern; readonly most: number; readonly count: number }
  )

export type Operation = {
  readonly op: string
  readonly about: string
  readonly platforms: readonly Platform[]
  readonly risk: Risk
  readonly approval: boolean
  readonly program: string
  /** What follows the program. */
  readonly arguments: readonly ArgvElement[]
  readonly params: { readonly [name: string]: Param }
  readonly timeoutMs: number
  readonly outputBytes: number
  readonly env: { readonly [name: string]: string }
  /** Exit codes besides 0 that count as done, such as 3 of `systemctl status` for a unit that is stopped. */
  readonly doneCodes: readonly number[]
}

/** Who may connect and how much; absent numbers are the defaults of the daemon. */
export type ServerRules = {
  readonly uids: readonly number[]
  readonly gids: readonly number[]
  /** Users whose word about an approval counts: the control daemon's. */
  readonly controlUids: readonly number[]
  readonly tokenSha256?: string
  readonly connections: number
  readonly concurrent: number
  /** Requests of one user in a minute. */
  readonly perMinute: number
}

export type Catalogue = { readonly server: ServerRules; readonly operations: readonly Operation[] }
