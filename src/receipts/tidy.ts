/** For long loops over what is garbage as soon as it is judged: left to itself the engine lets hundreds of megabytes of it gather. */

/** @returns a function to be called once an item; at every `count`th the garbage is collected */
export function tidyEvery(count: number): () => void {
  let seen = 0
  return () => {
    seen += 1
    if (seen % count === 0) Bun.gc(true)
  }
}
