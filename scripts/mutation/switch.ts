/** Tells instrumented code which mutants are active, and counts the mutants it reaches. It runs inside a test process. */

/** The exit code of a process that reached its active mutants far more often than the unchanged program does. */
export const ENDLESS = 87

export type Counts = Record<string, number>

export type Switch = ReturnType<typeof createSwitch>

/** Several mutants may be active at once. The instrumenter writes the unusual names into the code. */
export function createSwitch(first: readonly string[], stop: (code: number) => void) {
  let only: string | undefined
  let several: ReadonlySet<string> | undefined
  let left = Number.POSITIVE_INFINITY
  let counts: Counts | undefined = {}
  const hit = (): boolean => {
    left -= 1
    if (left < 0) stop(ENDLESS)
    return true
  }
  function activate(ids: readonly string[], limit: number): void {
    only = ids[0]
    several = ids.length > 1 ? new Set(ids) : undefined
    left = limit
  }
  activate(first, left)
  return {
    stryMutAct_9fa48: (id: string): boolean => (several === undefined ? id === only : several.has(id)) && hit(),
    stryCov_9fa48: (...ids: string[]): void => {
      if (counts) for (const id of ids) counts[id] = (counts[id] ?? 0) + 1
    },
    stryNS_9fa48: () => ({}),
    activate,
    /** Returns the counts since the last call; counts further only when `goOn` is true. */
    take: (goOn: boolean): Counts => {
      const taken = counts ?? {}
      counts = goOn ? {} : undefined
      return taken
    },
  }
}
