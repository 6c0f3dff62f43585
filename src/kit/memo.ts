/** @returns the function with its results kept, one for each argument */
export function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, { readonly value: T }>()
  return (key) => {
    const found = made.get(key) ?? { value: make(key) }
    made.set(key, found)
    return found.value
  }
}
