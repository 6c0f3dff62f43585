/** Lists what the published package exports: each subpath, the source behind it, and where it runs. Exports, checks and tests follow this list. */

export type Entry = {
  /** As in `exports` of package.json: "." or "./name". */
  readonly subpath: string
  /** A path below the root of the repository. Its types are those of the subpath, and Bun runs it in process. */
  readonly source: string
  /**
   * What runs on Node: the same source, which then uses no Bun API in anything it imports; another source with the same exports; or
   * nothing, so that the subpath exists in Bun alone.
   */
  readonly node: 'same' | 'none' | `src/${string}.ts`
}

// biome-ignore format: a list to be read
export const entries: readonly Entry[] = [
  { subpath: '.', source: 'src/agent.ts', node: 'src/library/remote/agent.ts' },
  { subpath: './agent', source: 'src/agent.ts', node: 'src/library/remote/agent.ts' },
  { subpath: './behavioral', source: 'src/library/behavioral.ts', node: 'same' },
  { subpath: './cache', source: 'src/library/cache.ts', node: 'same' },
  { subpath: './config', source: 'src/library/config.ts', node: 'same' },
  { subpath: './discovery', source: 'src/library/discovery.ts', node: 'same' },
  { subpath: './formatters', source: 'src/library/formatters.ts', node: 'same' },
  { subpath: './mcp', source: 'src/library/agent/mcp-registry.ts', node: 'src/library/remote/mcp-registry.ts' },
  { subpath: './relations', source: 'src/library/relations.ts', node: 'same' },
  { subpath: './sandbox', source: 'src/library/remote/sandbox.ts', node: 'same' },
  { subpath: './tools', source: 'src/library/tools.ts', node: 'same' },
  { subpath: './trajectories', source: 'src/library/agent/trajectories.ts', node: 'same' },
  { subpath: './transports', source: 'src/library/stdio/transports.ts', node: 'same' },
  { subpath: './unix', source: 'src/unix.ts', node: 'src/library/remote/unix.ts' },
  { subpath: './skill-library', source: 'src/control/skills/agent-skill-index.ts', node: 'same' },
]

/** Packages whose types a public type may name; they become dependencies of the published package. */
export const typedPackages: readonly string[] = ['zod']

/** Returns the name of an entry's files in `dist/`, without extension. */
export function fileOf({ subpath }: Pick<Entry, 'subpath'>): string {
  return subpath === '.' ? 'agent' : subpath.slice('./'.length)
}

export type Platform = {
  /** What `process.platform` and `process.arch` are there. */
  readonly os: string
  readonly cpu: string
  /** The package of Bun for it; its version is that of `bun` in package.json. */
  readonly runtime: string
}

export const platforms: readonly Platform[] = [
  { os: 'linux', cpu: 'x64', runtime: '@oven/bun-linux-x64' },
  { os: 'linux', cpu: 'arm64', runtime: '@oven/bun-linux-aarch64' },
]

export function platformName({ os, cpu }: Platform): string {
  return `${os}-${cpu}`
}
