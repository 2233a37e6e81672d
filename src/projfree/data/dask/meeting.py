"""Fits that go on side by side: what all of them ask of the rows is answered in one round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from projfree.data.dask.jobs import Several, Work

if TYPE_CHECKING:
    from projfree.data.dask.rounds import Rounds

T = TypeVar("T")
#: Seconds that a question waits for those of others: one of them may wait for what another one is asking.
MOMENT = 0.25

#: The meeting that this thread takes part in.
MEETING: ContextVar[Meeting | None] = ContextVar("projfree meeting", default=None)


class Ended(BaseException):  # no error: raised where a thread asks on after another one has failed
    """The meeting is over."""


class Question:
    """A job that waits for its answer."""

    def __init__(self, job: Work) -> None:
        self.job, self.answer = job, Future[Any]()


class Meeting:
    """Threads that ask, and one that answers all of them at once.

    Rounds are run by the thread that holds the meeting, so that an interrupt finds it there and no task is left behind.
    Who asks together with whom depends on clocks, and the answers do not: jobs of one round know nothing of each other.

    Parameters
    ----------
    rounds : Rounds
        The rows that questions are about; those about other rows are answered as ever.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self._present, self._asked, self._over = 0, list[Question](), False
        self._changed = threading.Condition()

    def hold(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """The results of all works, each in a thread of its own; the error of the first one that has failed."""
        self._present = len(works)
        with ThreadPoolExecutor(max(1, len(works)), thread_name_prefix="projfree-fold") as pool:
            running = [pool.submit(copy_context().run, self._attend, work) for work in works]
            try:
                while asked := self._next():
                    self._answer(asked)
            except BaseException:
                self._end()
                raise
        failed = [one.exception() for one in running if one.exception() is not None]
        for error in failed:
            if error is not None and not isinstance(error, Ended):
                raise error
        return [one.result() for one in running]

    def ask(self, job: Work) -> Any:
        """The answer to a job, together with what others ask."""
        question = Question(job)
        with self._changed:
            if self._over:
                raise Ended
            self._asked.append(question)
            self._changed.notify_all()
        return question.answer.result()

    def _attend(self, work: Callable[[], T]) -> T:
        MEETING.set(self)
        try:
            return work()
        except BaseException:
            self._end()
            raise
        finally:
            with self._changed:
                self._present -= 1
                self._changed.notify_all()

    def _next(self) -> list[Question]:
        """What is to be answered in the next round; nothing where all have left."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or not self._present)
            self._changed.wait_for(lambda: len(self._asked) >= self._present, MOMENT)
            asked, self._asked = self._asked, []
            return asked

    def _answer(self, asked: list[Question]) -> None:
        jobs = tuple(question.job for question in asked)
        try:
            answers = (self.rounds.at_once(jobs[0]),) if len(jobs) == 1 else self.rounds.at_once(Several(jobs))
        except Exception as error:
            for question in asked:
                question.answer.set_exception(error)
        except BaseException:
            for question in asked:
                question.answer.set_exception(Ended())
            raise
        else:
            for question, answer in zip(asked, answers, strict=True):
                question.answer.set_result(answer)

    def _end(self) -> None:
        """Let nobody ask any more."""
        with self._changed:
            self._over = True
            for question in self._asked:
                question.answer.set_exception(Ended())
            self._asked = []
            self._changed.notify_all()
