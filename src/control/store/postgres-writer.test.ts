import { expect, test } from 'bun:test'
import type { Command } from '../contract/store-port.ts'
import { createTextOf } from './open-postgres.ts'
import { createSession } from './postgres-session.ts'
import { createPostgresWriter } from './postgres-writer.ts'

class ServerError extends Error {
  readonly code = 'ERR_POSTGRES_SERVER_ERROR'
  constructor(readonly errno: string) {
    super('on purpose')
  }
}

class Lost extends Error {
  readonly code = 'ERR_POSTGRES_CONNECTION_CLOSED'
}

/** Makes a server that answers in order; a statement for which `failure` returns an error gets that error. */
function server(failure: (sql: string, times: number) => Error | undefined = () => undefined) {
  const [sent, log]: [string[], string[]] = [[], []]
  const state = { answering: Promise.resolve() }
  const receive = (sql: string): Promise<unknown> => {
    sent.push(sql)
    log.push(sql)
    const error = failure(sql, sent.filter((one) => one === sql).length)
    const answer = state.answering.then(() => Bun.sleep(1)).then(() => (error ? Promise.reject(error) : []))
    state.answering = answer.then(
      () => void log.push(`answer to ${sql}`),
      () => {},
    )
    return answer
  }
  const commit = () => receive('COMMIT')
  const writer = createPostgresWriter({
    reserved: (work) => work({ session: () => createSession({ unsafe: receive }, createTextOf()), commit }),
    notify: (own, topics) => own.send(`NOTIFY ${topics.size}`),
    notifyListeners: () => {},
    random: () => 0,
  })
  return { writer, sent, log }
}

function* insert(name = 'a'): Command<string> {
  yield [`INSERT ${name}`]
  return name
}

const outcome = (work: Promise<unknown>) =>
  work.catch((error: unknown) => (error instanceof Error ? `refused: ${error.constructor.name}` : 'refused'))

test('what commands send last, the announcement and COMMIT go out together', async () => {
  const { writer, sent, log } = server()
  const beside = (key: string) => ({ kind: 'test', key })
  await Promise.all(['a', 'b'].map((name) => writer.write(() => insert(name), beside(name))))
  expect(sent).toEqual(['BEGIN', sent[1] ?? '', 'INSERT a', 'INSERT b', 'NOTIFY 0', 'COMMIT'])
  expect(log.indexOf('COMMIT')).toBeLessThan(log.indexOf('answer to INSERT a'))
})

test('nobody is told that something is stored before COMMIT is answered', async () => {
  const { writer, sent } = server((sql) => (sql === 'COMMIT' ? new Lost() : undefined))
  expect(await outcome(writer.write(insert))).toBe('refused: Lost')
  expect(sent.filter((sql) => sql === 'INSERT a')).toHaveLength(1)
})

test('a connection that ends without a word once COMMIT is under way: nobody knows, so nothing is repeated', async () => {
  const { writer, sent } = server((sql) => (sql === 'INSERT a' || sql === 'COMMIT' ? new Lost() : undefined))
  expect(await outcome(writer.write(insert))).toBe('refused: Lost')
  expect(sent.filter((sql) => sql === 'INSERT a')).toHaveLength(1)
})

test.each(['25P03', '40001'])('the server says %s to the last statement before COMMIT: it is written once more', async (state) => {
  const { writer, sent } = server((sql, times) => (sql === 'INSERT a' && times === 1 ? new ServerError(state) : undefined))
  expect(await writer.write(insert)).toBe('a')
  expect(sent.filter((sql) => sql === 'INSERT a')).toHaveLength(2)
  expect(sent.at(-1)).toBe('COMMIT')
})

test('the server refuses the last statement of one command: that one is refused, the others are written', async () => {
  const { writer, sent } = server((sql) => (sql === 'INSERT b' ? new ServerError('23505') : undefined))
  const answers = ['a', 'b', 'c'].map((name) => outcome(writer.write(() => insert(name))))
  expect(await Promise.all(answers)).toEqual(['a', 'refused: ServerError', 'c'])
  expect(sent.slice(sent.lastIndexOf('SAVEPOINT command') - 3)).toContain('ROLLBACK TO command')
  expect(sent.at(-1)).toBe('COMMIT')
})
