import { describe, expect, test } from 'bun:test'
import { channelRows } from '../../channels/list.ts'
import { tableOf } from '../../config/table.ts'
import { below, isRunnable, spelled } from '../args/command.ts'
import { scan } from '../args/scan.ts'
import { commands } from './list.ts'

const all = await Promise.all(commands.filter(isRunnable).map(async ({ name, load }) => ({ name, command: await load() })))

/** Returns the words that a shell makes of a line, without redirections. */
function wordsOf(line: string): string[] {
  const script = `set -- ${line.replace(/[<>] *[^ ]+$/, '')}; for word; do printf '%s\\0' "$word"; done`
  return Bun.spawnSync(['sh', '-c', script]).stdout.toString().split('\0').slice(0, -1)
}

test('every name stands there once, and below a group that is listed', () => {
  const names = commands.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const groups = names.filter((name) => name.includes(' ')).map((name) => name.slice(0, name.lastIndexOf(' ')))
  expect(groups.filter((group) => !names.includes(group))).toEqual([])
  for (const group of commands.filter((row) => !isRunnable(row))) {
    expect(below(commands, group.name)).not.toEqual([])
    if ('alone' in group) expect(names).toContain(String(group.alone))
  }
})

describe.each(all.map(({ name, command }) => [name, command] as const))('%s', (_name, { flags = {}, args = {}, examples }) => {
  test('each of its examples is a line that it understands', () => {
    expect(examples).not.toEqual([])
    for (const [line] of examples) expect({ line, faults: scan({ flags, args }, wordsOf(line)).faults }).toEqual({ line, faults: [] })
  })

  test('its short flags are one letter each, its flags no words of the help, and only its last argument may be several', () => {
    const shorts = Object.values(flags).flatMap(({ short }) => (short === undefined ? [] : [short]))
    expect(shorts.filter((short, at) => !/^[A-Za-z]$/.test(short) || shorts.indexOf(short) !== at || 'hHv'.includes(short))).toEqual([])
    expect(Object.keys(flags).map(spelled)).not.toContain('--help')
    expect(
      Object.values(args)
        .slice(0, -1)
        .filter(({ many, optional }) => many || optional).length,
    ).toBe(0)
  })

  test('a flag that stands for a setting names one that there is, and has no default, which would beat the file', () => {
    for (const flag of Object.values(flags)) {
      if (flag.setting === undefined) continue
      expect(tableOf(channelRows).byKey.get(flag.setting)?.key).toBe(flag.setting)
      expect('default' in flag).toBe(false)
    }
  })
})
