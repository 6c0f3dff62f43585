import { afterAll } from 'bun:test'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep } from '../../test/support/tier.ts'
import { edit, homes, rewrite, testBoth } from './tampering.fixture.ts'

const { another, removeAll } = homes()
afterAll(removeAll)

testBoth(
  [
    { name: 'CRLF line ends', do: ({ home }) => home.setLog(home.log().replaceAll('\n', '\r\n')), record: 1, kind: 'form' },
    { name: 'a carriage return after receipt 4', do: ({ home }) => edit(home, 4, (line) => `${line}\r`), record: 4, kind: 'form' },
    {
      name: 'keys in another order',
      do: ({ home }) => edit(home, 2, (line) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(line)).reverse()))),
      record: 2,
      kind: 'form',
    },
    { name: 'seq as 3.0', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":3.0')), record: 3, kind: 'form' },
    { name: 'seq as 3e0', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":3e0')), record: 3, kind: 'form' },
    { name: 'seq as a string', do: ({ home }) => edit(home, 3, (line) => line.replace('"seq":3', '"seq":"3"')), record: 3, kind: 'form' },
    { name: 'a blank inside', do: ({ home }) => edit(home, 3, (line) => line.replace('":', '": ')), record: 3, kind: 'form' },
    { name: 'a blank behind', do: ({ home }) => edit(home, 3, (line) => `${line} `), record: 3, kind: 'form' },
    { name: 'an empty line', do: ({ home }) => rewrite(home, (all) => all.toSpliced(2, 0, '')), record: 3, kind: 'form' },
    {
      name: 'a letter as an escape',
      do: ({ home }) => edit(home, 2, (line) => line.replace('file_read', 'file\\u005fread')),
      record: 2,
      kind: 'form',
    },
    { name: 'a member added', do: ({ home }) => edit(home, 2, (line) => line.replace('"v":3', '"v":3,"x":1')), record: 2, kind: 'form' },
    { name: 'a member doubled', do: ({ home }) => edit(home, 2, (line) => line.replace('"v":3', '"v":3,"v":3')), record: 2, kind: 'form' },
    {
      name: 'an error slipped in',
      do: ({ home }) => edit(home, 2, (line) => line.replace('"id":', '"error":"x","id":')),
      record: 2,
      kind: 'hash',
    },
    { name: 'the mac stripped', do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*",/, '')), record: 4, kind: 'mac' },
    {
      name: 'an empty mac',
      do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*"/, '"mac":""')),
      record: 4,
      kind: 'form',
    },
    {
      name: 'a mac of zeros',
      do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"[0-9a-f]*"/, `"mac":"${'0'.repeat(64)}"`)),
      record: 4,
      kind: 'mac',
    },
    {
      name: 'hashes in capitals',
      do: ({ home }) => edit(home, 4, (line) => line.replace(/"mac":"([0-9a-f]*)"/, (all) => all.toUpperCase().replace('MAC', 'mac'))),
      record: 4,
      kind: 'form',
    },
    { name: 'a NUL byte', do: ({ home }) => edit(home, 2, (line) => line.replace('file_read', 'file\0read')), record: 2, kind: 'form' },
    { name: 'bytes that are no UTF-8', do: ({ home }) => home.setLog(Buffer.from(home.log(), 'utf8').fill(0xff, 900, 902)), record: 2 },
    { name: 'a byte order mark', do: ({ home }) => home.setLog(`\ufeff${home.log()}`), record: 1, kind: 'form' },
    { name: 'garbage for a log', do: ({ home }) => home.setLog('not a log\n'), record: 1, kind: 'form' },
    {
      name: 'a line of two megabytes',
      do: ({ home }) => rewrite(home, (all) => [...all.slice(0, 2), `{${' '.repeat(2 << 20)}}`, ...all.slice(2)]),
      record: 3,
      kind: 'form',
    },
    { name: 'the key removed', do: ({ home }) => rmSync(home.paths.key), record: 1, kind: 'key' },
    { name: 'the key readable by others', do: ({ home }) => chmodSync(home.paths.key, 0o644), record: 1, kind: 'key' },
    { name: 'another key', do: ({ home }) => writeFileSync(home.paths.key, `${'ab'.repeat(32)}\n`), record: 1, kind: 'mac' },
    { name: 'a key that is none', do: ({ home }) => writeFileSync(home.paths.key, 'secret\n'), record: 1, kind: 'key' },
    {
      name: 'the log replaced by a link',
      record: 1,
      kind: 'unreadable',
      do: ({ home }) => {
        copyFileSync(home.paths.log, join(home.folder, 'real'))
        rmSync(home.paths.log)
        symlinkSync(join(home.folder, 'real'), home.paths.log)
      },
    },
    {
      name: 'the log replaced by a folder',
      record: 1,
      kind: 'unreadable',
      do: ({ home }) => {
        rmSync(home.paths.log)
        mkdirSync(home.paths.log)
      },
    },
    { name: 'the head file removed', do: ({ home }) => rmSync(home.paths.head), record: 5, kind: 'head' },
    { name: 'the head file damaged', do: ({ home }) => writeFileSync(home.paths.head, 'bc1:nonsense\n'), record: 5, kind: 'head' },
    {
      name: 'a head file with a second line',
      do: ({ home }) => writeFileSync(home.paths.head, `x\n${readFileSync(home.paths.head, 'utf8')}`),
      record: 5,
      kind: 'head',
    },
    {
      name: 'the count in the head file edited',
      do: ({ home }) => writeFileSync(home.paths.head, readFileSync(home.paths.head, 'utf8').replace(':5:', ':4:')),
      record: 4,
      kind: 'seal',
    },
  ],
  { another, isDeep },
)
