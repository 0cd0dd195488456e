"""A project's allow-list: the hosts that the commands of its agents may reach."""

from django.db import transaction

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.errors import ValidationError
from board.events import Actor, publish
from board.hosts import HostError, parse
from board.models import Project, User


def set_network_hosts(project: Project, *, by: User, text: str) -> None:
    """Set the hosts, one on each line; none closes the network. Runs hear of it when they next begin or go on.

    Raises ValidationError, which names each line that is not the name of a host.
    """
    try:
        hosts = list(parse(text))
    except HostError as error:
        raise ValidationError(str(error), fields={"hosts": str(error)}) from error
    with transaction.atomic():
        before = Project.objects.select_for_update().get(pk=project.pk).network_hosts
        if before == hosts:
            return
        Project.objects.filter(pk=project.pk).update(network_hosts=hosts)
        publish(project.pk, events.ProjectChanged(what="allowed hosts"), by=Actor.person(by))
        data = {"before": before, "after": hosts}
        audit.record(Act("network_hosts_set", Actor.person(by), project=project, data=data))
    project.refresh_from_db()
