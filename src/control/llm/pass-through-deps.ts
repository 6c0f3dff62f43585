/** Defines what the pass-through needs of the world. */

import type { Plane, PlaneOptions } from '../contract/plane.ts'
import type { Upstreams } from './upstreams.ts'

export type PassThroughDeps = {
  readonly plane: {
    readonly access: Pick<Plane['access'], 'callerOf'>
    readonly tasks: Pick<Plane['tasks'], 'get'>
    readonly budget: Pick<Plane['budget'], 'remaining' | 'reserve' | 'settle'>
  }
  readonly upstreams: Upstreams
  /** The guarded fetch for this base URL (createProviderFetch). */
  readonly fetchFor: (baseUrl: string) => typeof fetch
  readonly sleep: (ms: number) => Promise<void>
  readonly now: () => number
  readonly log: PlaneOptions['log']
}
