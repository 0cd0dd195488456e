"""Every table of the product; the modules are named for their nouns."""

from board.models.accounts import ApiToken, Invitation, OwnerLink, SignInTry, User
from board.models.approvals import Approval
from board.models.audit import AuditEntry, AuditHead
from board.models.cards import Card, Comment, Dependency
from board.models.credentials import Credential
from board.models.errands import Errand
from board.models.events import Event
from board.models.instructions import Instruction
from board.models.notices import Notice, Webhook
from board.models.policies import Grant, PolicyVersion
from board.models.projects import Column, Label, Membership, Project
from board.models.runs import LogItem, Run, Step, Usage
from board.models.workers import LeaderLease, Worker

__all__ = [
    "ApiToken",
    "Approval",
    "AuditEntry",
    "AuditHead",
    "Card",
    "Column",
    "Comment",
    "Credential",
    "Dependency",
    "Errand",
    "Event",
    "Grant",
    "Instruction",
    "Invitation",
    "Label",
    "LeaderLease",
    "LogItem",
    "Membership",
    "Notice",
    "OwnerLink",
    "PolicyVersion",
    "Project",
    "Run",
    "SignInTry",
    "Step",
    "Usage",
    "User",
    "Webhook",
    "Worker",
]
