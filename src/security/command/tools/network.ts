/** Finds the hosts that a command names or is known to need, so that it gets access to them and to nothing else. */

import { type HostList, hostsOfList } from '../../targets/host-lists.ts'
import { type Arg, HOLE, sure } from '../flow/model.ts'
import { parseOptions } from '../flow/options.ts'

/** Package managers with the sub-commands that fetch or publish. An empty text stands for the command without a sub-command. */
const managers: { readonly [name: string]: { readonly list: HostList; readonly subs: string } } = {
  npm: {
    list: 'npm',
    subs: 'install i ci clean-install add update up upgrade outdated audit view info show search publish exec x create ping',
  },
  npx: { list: 'npm', subs: '*' },
  bunx: { list: 'npm', subs: '*' },
  pnpx: { list: 'npm', subs: '*' },
  pnpm: { list: 'npm', subs: 'install i add update up outdated audit view info dlx create publish' },
  yarn: { list: 'npm', subs: ' install add upgrade up outdated audit info dlx create npm' },
  bun: { list: 'npm', subs: 'install i ci add a update outdated audit x create publish' },
  pip: { list: 'pypi', subs: 'install download wheel index search' },
  pipx: { list: 'pypi', subs: 'install run upgrade upgrade-all inject' },
  uv: { list: 'pypi', subs: 'sync add lock pip tool run publish build' },
  uvx: { list: 'pypi', subs: '*' },
  poetry: { list: 'pypi', subs: 'install add update lock publish' },
  cargo: { list: 'crates', subs: 'fetch add install update search publish' },
  go: { list: 'go', subs: 'get install mod' },
  gem: { list: 'rubygems', subs: 'install update search outdated push' },
  bundle: { list: 'rubygems', subs: ' install update add outdated' },
  gh: { list: 'github', subs: '*' },
}

const fetchers = new Set('curl wget wget2 http https httpie xh aria2c'.split(' '))

/** The options of curl and wget whose value is not an address. */
const fetcherTable = {
  data:
    '-o --output -H --header -d --data --data-raw --data-binary --data-urlencode -F --form -X --request -u --user -A --user-agent -e --referer ' +
    '-b --cookie -c --cookie-jar -w --write-out -m --max-time --connect-timeout --retry -T --upload-file -O --output-document -P ' +
    '--directory-prefix --post-data --json -K --config -E --cert --cacert --resolve --connect-to -r --range -U --method --body-data',
} as const

/** @returns the hosts; empty where the command needs no network or the address is known only when it runs */
export function hostsOf(name: string, args: readonly Arg[]): readonly string[] {
  if (fetchers.has(name)) return fetched(name, args)
  if (name === 'git') return gitHosts(args)
  if (/^python[\d.]*$/.test(name) && sure(args[0]) === '-m' && sure(args[1]) === 'pip') return managed('pip', args.slice(2))
  return managed(/^pip[\d.]+$/.test(name) ? 'pip' : name, args)
}

const offline = /^(?:--version|--help|-h|--offline|--frozen-offline|--no-index|--no-install)$/

function managed(name: string, args: readonly Arg[]): readonly string[] {
  const manager = Object.hasOwn(managers, name) ? managers[name] : undefined
  const words = args.map(sure)
  const first = words.findIndex((text) => text === undefined || !text.startsWith('-'))
  // The words after the name of a program are for the program: `npx tsc --version`.
  const own = manager?.subs === '*' && first >= 0 ? words.slice(0, first) : words
  if (!manager || own.some((text) => text !== undefined && offline.test(text))) return []
  const sub = words.find((text) => text !== undefined && !text.startsWith('-')) ?? ''
  if (manager.subs !== '*' && !manager.subs.split(' ').includes(sub)) return []
  const { replaced, added } = registriesIn(words)
  return distinct([...(replaced.length > 0 ? replaced : hostsOfList(manager.list)), ...added])
}

/** The hosts that `--registry` of npm and `--index-url` of pip name in the place of the usual ones, or beside them. */
function registriesIn(words: readonly (string | undefined)[]) {
  const named = (option: RegExp) =>
    words.flatMap((word, at) => {
      const [, attached] = /^--[\w-]+=(.*)$/s.exec(word ?? '') ?? []
      return option.test((word ?? '').replace(/=.*$/s, '')) ? (urlHost(attached ?? words[at + 1] ?? '') ?? []) : []
    })
  return {
    replaced: named(/^(?:--registry|--index-url|--default-index|-i)$/),
    added: named(/^(?:--extra-index-url|--index|-f|--find-links)$/),
  }
}

/** curl also takes an address without `https://`. */
function fetched(name: string, args: readonly Arg[]): readonly string[] {
  const table = name === 'curl' ? { data: fetcherTable.data.replace(' -O ', ' ') } : fetcherTable
  const { operands, options } = parseOptions(args, table)
  const named = options.flatMap(({ name: option, arg, value }) => (option === '--url' ? [value ?? arg] : []))
  return distinct([...operands, ...named].flatMap((arg) => arg.texts.flatMap((text) => urlHost(text) ?? bareHost(text) ?? [])))
}

/** The host of a URL that may be known only in part, as long as the host itself is complete. */
function urlHost(text: string): string | undefined {
  const [, authority] = /^(?:git\+)?https?:\/\/([^/?#\s]+)/i.exec(text.replace(/^--url=/, '')) ?? []
  if (authority === undefined || authority.includes(HOLE)) return undefined
  return authority.replace(/^.*@/, '').replace(/:\d*$/, '').toLowerCase()
}

function bareHost(text: string): string | undefined {
  return /^([a-z\d-]+(?:\.[a-z\d-]+)+)(?::\d+)?(?:[/?#]|$)/i.exec(text)?.[1]?.toLowerCase()
}

const gitFetches = new Set('clone fetch pull push ls-remote submodule remote archive'.split(' '))

function gitHosts(args: readonly Arg[]): readonly string[] {
  const { operands } = parseOptions(args, { data: '-C -c --git-dir --work-tree --namespace' }, { inOrder: true })
  if (!gitFetches.has(sure(operands[0]) ?? '') || sure(operands[0]) === 'remote') return []
  return distinct(operands.flatMap((arg) => arg.texts.flatMap((text) => urlHost(text) ?? [])))
}

function distinct(hosts: readonly string[]): readonly string[] {
  return [...new Set(hosts)]
}
