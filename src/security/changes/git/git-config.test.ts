import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { parseGitConfig } from './git-config.ts'

/** Returns the settings that the real git reads in the file: NUL-separated `key\nvalue`, or `key` alone for a name without "=". */
function read(text: string): (readonly [string, string | undefined])[] | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-config-'))
  const file = join(folder, 'config')
  writeFileSync(file, text)
  const { exitCode, stdout } = Bun.spawnSync(['git', 'config', '--no-includes', '--list', '-z', '-f', file], {
    env: { PATH: '/usr/bin:/bin', HOME: folder },
  })
  rmSync(folder, { recursive: true })
  if (exitCode !== 0) return
  return stdout
    .toString()
    .split('\0')
    .slice(0, -1)
    .map((entry) => {
      const at = entry.indexOf('\n')
      return at < 0 ? [entry, undefined] : [entry.slice(0, at), entry.slice(at + 1)]
    })
}

const parsed = (text: string): (readonly [string, string | undefined])[] | undefined =>
  parseGitConfig(text)?.map(({ key, value }) => [key, value] as const)

describe('reads as git does', () => {
  test.each([
    '[core]\n\tbare = false\n\tfsmonitor\n',
    '[remote "origin"]\n\turl = https://x/y ; comment\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    '[Core]Bare=true # x\n[a.B "C\\"\\\\d"] e = "x ; # y"  z\\\n  w\n',
    '\ufeff[a]\r\n\tb = c\r\n',
    '[a]\nb = "x\\ty\\n" \\\nlast',
    '; only\n# comments\n',
    '',
    '[a]\nb=\nc = ""\n',
    '[a] b = 1 \\\n\n c = 2',
    '[a]\n\tb = "never closed\n',
    '[a\n]\nb = c',
    '[a "x\ny"]\nb = c',
    '[a "x" ]\nb = c',
    '[a]\n1b = c',
    '[a]\nb c = d',
    '[a]\nb = \\q',
    '[a]\nb : c',
  ])('%j', (text) => {
    expect(parsed(text) ?? 'refused').toEqual(read(text) ?? 'refused')
  })

  const piece = fc.constantFrom(
    '[core]',
    '[remote "origin"]',
    '[a.b]',
    '[x "\\"q"]',
    '[',
    ']',
    '"',
    '\\',
    '\n',
    '\n',
    '\r\n',
    ' ',
    '\t',
    '=',
    '=',
    ' = ',
    '#',
    ';',
    'name',
    'Key-1',
    '9',
    'true',
    'val ue',
    '\\n',
    '\\t',
    '\\\n',
    '\\\\',
    'é',
    '!sh',
    '.',
  )

  const value = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(''))
  const line = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(fc.constantFrom('a', 'Key-1', '\tx9'), fc.constantFrom('=', ' = ', '\t='), value).map((parts) => parts.join('')),
    },
    { weight: 2, arbitrary: fc.constantFrom('[core]', '[remote "origin"] a = b', '[A.b]', '[x "\\"q"]', '# c', 'flag', '') },
    { weight: 1, arbitrary: value },
  )

  test('whatever is put together from its marks', () => {
    let understood = 0
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
        const text = `[core]\n${lines.join('\n')}`
        const own = parsed(text)
        understood += own !== undefined && own.length > 0 ? 1 : 0
        expect([text, own ?? 'refused']).toEqual([text, read(text) ?? 'refused'])
      }),
      { numRuns: Number(process.env.FUZZ_GIT ?? 300) },
    )
    expect(understood).toBeGreaterThan(40)
  }, 120_000)
})

test('what git refuses, or what another reader could read otherwise, is not understood', () => {
  for (const text of ['key = before any section', '[a]\nb = \0', '[a]\rb = c', '[]\na = b', '[a]\nb = "x', '[a]\nb = \\x'])
    expect([text, parseGitConfig(text)]).toEqual([text, undefined])
})
