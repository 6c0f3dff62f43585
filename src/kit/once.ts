/** Creates a value on first use and keeps it. */

export type Once<T> = {
  /** Rejects for all current callers if the creation fails; the next call tries again. */
  get(): Promise<T>
  /** Returns the value, or undefined before it exists. */
  made(): T | undefined
  /** Waits for a creation in progress, then returns the value, or undefined if there is none. */
  settled(): Promise<T | undefined>
}

export function once<T>(make: () => Promise<T>): Once<T> {
  const state: { making?: Promise<T> | undefined; made?: T } = {}

  async function attempt(): Promise<T> {
    try {
      state.made = await make()
      return state.made
    } catch (error) {
      state.making = undefined
      throw error
    }
  }

  return {
    get: () => (state.making ??= attempt()),
    made: () => state.made,
    settled: async () => await state.making?.catch(() => undefined),
  }
}

/** @returns the function with its results kept, one for each argument */
export function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, { readonly value: T }>()
  return (key) => {
    const found = made.get(key) ?? { value: make(key) }
    made.set(key, found)
    return found.value
  }
}
