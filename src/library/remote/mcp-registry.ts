/** Stands for `braidclaw/mcp` on Node, which has no sandbox of its own for the servers. */

/** @throws Error always: it says what to do */
export function createMcpRegistry(): never {
  throw new Error(
    'braidclaw/mcp needs Bun (https://bun.sh): run this program with bun, or use the servers of "braidclaw mcp" through an agent',
  )
}
