/** What is made when it is first wanted, and then kept. */

export type Once<T> = {
  /** Whoever waits is told what went wrong; the next one who asks has it tried again. */
  get(): Promise<T>
  /** Undefined before it is made. */
  made(): T | undefined
  /** The same, once what is being made is made, or could not be. */
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
