/** Creates a value on first use and keeps it. */

export type Lazy<T> = {
  /** Rejects for all current callers if the creation fails; the next call tries again. */
  get(): Promise<T>
  /** Returns the value, or undefined before it exists. */
  current(): T | undefined
  /** Waits for a creation in progress, then returns the value, or undefined if there is none. */
  settled(): Promise<T | undefined>
}

export function lazy<T>(make: () => Promise<T>): Lazy<T> {
  const state: { creation?: Promise<T> | undefined; value?: T } = {}

  async function attempt(): Promise<T> {
    try {
      state.value = await make()
      return state.value
    } catch (error) {
      state.creation = undefined
      throw error
    }
  }

  return {
    get: () => (state.creation ??= attempt()),
    current: () => state.value,
    settled: async () => await state.creation?.catch(() => undefined),
  }
}

/** @returns the function with its results kept, one for each argument */
export function memo<T>(make: (key: string) => T): (key: string) => T {
  const results = new Map<string, { readonly value: T }>()
  return (key) => {
    const result = results.get(key) ?? { value: make(key) }
    results.set(key, result)
    return result.value
  }
}
