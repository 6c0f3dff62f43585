/** Defines ready-made lists of hosts: `@npm` in allowed_domains stands for every host that npm needs. */

const lists = {
  npm: ['registry.npmjs.org'],
  pypi: ['pypi.org', 'files.pythonhosted.org'],
  crates: ['index.crates.io', 'static.crates.io', 'crates.io'],
  go: ['proxy.golang.org', 'sum.golang.org'],
  rubygems: ['rubygems.org', 'index.rubygems.org'],
  github: [
    'github.com',
    'api.github.com',
    'codeload.github.com',
    'raw.githubusercontent.com',
    'objects.githubusercontent.com',
    'release-assets.githubusercontent.com',
  ],
} as const

export type HostList = keyof typeof lists

export const hostLists: { readonly [name: string]: readonly string[] } = lists

/** @returns the hosts with every `@name` replaced by its list; an unknown name stays and matches no host */
export function expandHosts(hosts: readonly string[]): readonly string[] {
  return [
    ...new Set(
      hosts.flatMap((host) =>
        Object.hasOwn(hostLists, host.slice(1)) && host.startsWith('@') ? (hostLists[host.slice(1)] ?? []) : [host],
      ),
    ),
  ]
}

export function hostsOfList(name: HostList): readonly string[] {
  return lists[name]
}
