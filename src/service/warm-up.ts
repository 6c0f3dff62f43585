/** Ends the patience with which the executable was built: from now on, what runs often becomes machine code as soon as usual. */

/**
 * The executable is built for short lives (scripts/compile.ts). Servers call this with the first request that asks something of them: one that
 * only waits keeps the 5 MB of the compiler.
 */
export function warmUp(): void {
  Bun.unsafe.setJITPolicy(1)
}
