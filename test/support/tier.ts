/** Tells a test how much to do: `npm test` is quick, `npm run test:deep` is thorough. A file that imports this belongs to both tiers. */

/** True in `npm run test:deep`. A test that runs only there stands behind `if (isDeep)`, and a file of such tests is named `*.deep.test.ts`. */
export const isDeep = Bun.env.TEST_TIER === 'deep'

/** Returns the number of repetitions for this tier. */
export function repetitions({ fast, deep }: { readonly fast: number; readonly deep: number }): number {
  return isDeep ? deep : fast
}
