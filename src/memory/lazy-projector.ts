/** Loads the projector when the first agent needs it: most turns keep no files of an agent. */

import { once } from '../kit/once.ts'
import type { createProjector, Projector } from './projector.ts'

export type LazyProjector = Projector & {
  /** Call it before the first run of an agent, and before `reset`. */
  prepare(): Promise<void>
}

export function lazyProjector(options: Parameters<typeof createProjector>[0]): LazyProjector {
  const projector = once(async () => (await import('./projector.ts')).createProjector(options))

  function loaded(): Projector {
    const found = projector.made()
    if (!found) throw new Error('the files of an agent are used before they are prepared')
    return found
  }

  return {
    async prepare() {
      await projector.get()
    },
    begin(run, how) {
      if (run.agent) loaded().begin(run, how)
    },
    flush: (run) => projector.made()?.flush(run),
    reset: (agent, step) => loaded().reset(agent, step),
    drop: (run) => projector.made()?.drop(run),
  }
}
