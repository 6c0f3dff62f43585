/** What the filter refuses of the flags that it shares with llm: before a model is asked, with nothing on stdout. */

import { describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shell } from '../support/shell.ts'
import { withTemplate } from '../support/templates.ts'
import { isDeep } from '../support/tier.ts'
import { home, refused, scripted } from '../support/turns.ts'

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0])
const echo = [{ text: '<{{last_user_message}}>' }]

describe('refused before a model is asked, with nothing on stdout', () => {
  const wrong: [string[], string][] = [
    [['--schema', '{"type": "objet"}'], 'type must be JSONType'],
    [['--schema', '{"$ref": "#"}'], 'it refers to itself without end'],
    [['--schema', '{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}'], 'refers to itself'],
    [['--schema', '{"$ref": "https://example.org/x.json"}'], "can't resolve reference https://example.org/x.json"],
    [['--schema', '{"type": '], 'this is not JSON'],
    [['--schema', 'name flot'], 'no type "flot"; did you mean "float"?'],
    [['--schema', 'first name int'], '"first name int" is not a field'],
    [['--schema', ' '], '--schema is empty'],
    [['--schema', 'missing.json'], '--schema "missing.json" looks like a file, and there is none'],
    [['--schema', 'a', '-x'], 'pass one'],
    [['--schema', 'a', '--output-format', 'stream-json'], '--schema has no stream; use --json'],
    [['--schema', 'a', '--tools', 'default', '--tool-backend', 'bash'], '--schema means nothing with the tool backend "bash"'],
    [['-a', 'https://example.org/a.png'], 'addresses are not fetched'],
    [['-a', 'missing.txt'], '"missing.txt" does not exist'],
    [['-a', '.'], 'is a folder'],
    [['-a', '.env'], 'a file that is not read'],
    [['-a', 'program'], '"program" is not UTF-8 text and no picture'],
    [['-a', '-'], '-a - is stdin, and nothing is piped in'],
    [['-t', 'sumary'], 'no template "sumary"; did you mean "summary"?'],
    [['-t', '../summary'], 'does not exist'],
    [['-t', 'summary'], 'the template needs a value: --param voice=…'],
    [
      ['-t', 'summary', '--param', 'voice=a', '--param', 'vioce=b'],
      '--param vioce: the template has no such variable; did you mean "voice"?',
    ],
    [['-t', 'summary', '--param', 'voice'], 'write NAME=VALUE in one word'],
    [['-t', 'summary', '-p', 'voice', 'GlaDOS'], '-p is the question here; a variable of the template: --param voice=VALUE'],
    [['-t', 'odd'], 'unknown key "promt"; did you mean "prompt"?'],
    [['-t', 'torn'], 'torn.yaml: '],
    [['-t', 'bomb'], 'bomb.yaml: '],
    [['--param', 'a=b'], 'name one with -t'],
    [['-o', 'temperature', '0.5'], 'write NAME=VALUE in one word, such as -o temperature=…'],
    [['-o', 'total_timeout=3'], 'has no such option; did you mean "total_timeout_s"?'],
    [['-o', 'timeout=soon'], '-o timeout: must be a number'],
    [['-o', 'fixture=x.json'], 'has no such option'],
    [['--cid', 'x', '-c'], 'name two conversations'],
  ]

  test.each(isDeep ? wrong : wrong.filter((_, at) => at % 3 === 0))('%j', async (args, says) => {
    using at = home()
    at.file('program', '\u0000\u0001')
    writeFileSync(join(at.workspace, 'shot.png'), png)
    withTemplate(at, 'summary.yaml', 'system: Summarise in the voice of $voice\n')
    withTemplate(at, 'odd.yaml', 'promt: hi\n')
    withTemplate(at, 'torn.yaml', 'prompt: [\n')
    withTemplate(
      at,
      'bomb.yaml',
      `a: &a [x,x,x]\n${'bcdefgh'.replace(/./g, (to) => `${to}: &${to} [${`*${String.fromCharCode(to.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    )
    refused(await at.run([...args, 'hello there'], scripted(at, echo)), 2, says)
    expect(existsSync(join(at.home, '.braidclaw/memory.sqlite'))).toBe(false)
  })

  test.each([
    ['a broken picture', png, 'it is a broken PNG picture'],
    ['a program', new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1, 0, 0, 0xff]), 'stdin is not UTF-8 text and no picture'],
    ['NUL bytes', new Uint8Array([97, 0, 98, 0]), 'stdin is not UTF-8 text and no picture'],
  ])('on stdin: %s', async (_, stdin, says) => {
    using at = home()
    refused(await at.run(['what is it?'], { ...scripted(at, echo), stdin }), 2, says)
  })

  test('nothing on stdin and no question, in a script', async () => {
    using at = home()
    expect(await shell(at, 'braidclaw < /dev/null', scripted(at, echo).env)).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: nothing to answer: give a message, or pipe text in\n',
    })
  })
})
